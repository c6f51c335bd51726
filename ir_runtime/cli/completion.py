"""``ir-runtime completion``: print the script that completes commands in a shell."""

from __future__ import annotations

import click

from .helping import GroupedCommand

__all__ = ["completion"]

_EPILOG = """\b
bash:  ir-runtime completion bash > ~/.local/share/bash-completion/completions/ir-runtime
zsh:   ir-runtime completion zsh > ~/.zfunc/_ir-runtime   (with fpath+=~/.zfunc before compinit)
fish:  ir-runtime completion fish > ~/.config/fish/completions/ir-runtime.fish

For the shell that is open: source <(ir-runtime completion bash)
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Keep")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete ir-runtime: commands, options, files, layers, inputs, codes."""
    from click.shell_completion import get_completion_class

    from .shells import register

    register()
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    completer = completion_class(ctx.find_root().command, {}, "ir-runtime", "_IR_RUNTIME_COMPLETE")
    click.echo(completer.source_template % completer.source_vars(), nl=False)
