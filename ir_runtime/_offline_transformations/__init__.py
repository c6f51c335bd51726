"""Whole-model transformations, under the import path of ``openvino._offline_transformations``."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, NoReturn

from .._util.absent import explain_absent
from ..codes import Code
from ..errors import UnsupportedError

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = [
    "apply_fused_names_cleanup",
    "apply_low_latency_transformation",
    "apply_make_stateful_transformation",
    "apply_moc_legacy_transformations",
    "apply_moc_transformations",
    "apply_pruning_transformation",
    "compress_model_transformation",
    "compress_quantize_weights_transformation",
    "convert_sequence_to_tensor_iterator_transformation",
    "paged_attention_transformation",
    "stateful_to_stateless_transformation",
]


def apply_moc_transformations(model: Model, cf: bool = False, smart_reshape: bool = False) -> None:
    """Do nothing: compilation folds constants and fuses layers."""


def apply_moc_legacy_transformations(model: Model, params_with_custom_types: Any = ()) -> None:
    """Do nothing, like `apply_moc_transformations`."""


def apply_fused_names_cleanup(model: Model) -> None:
    """Do nothing: there are no fused-name annotations to remove."""


def compress_model_transformation(model: Model) -> None:
    """Store f32 and f64 weights as f16, each followed by a Convert, as ``save_model(…, compress_to_fp16=True)`` does.

    Node handles obtained before the call no longer belong to the model.
    """
    from ..io.writer import compress, write
    from ..openvino.reading import read_model

    xml, weights = BytesIO(), BytesIO()
    write(compress(model._content()), xml, weights)
    vars(model).update(vars(read_model(xml.getvalue(), weights.getvalue(), limits=model.limits)))


def apply_make_stateful_transformation(model: Model, pairs: Any) -> None:
    """Turn each pair of an input and an output into a variable.

    Args:
        model: the model, which is changed.
        pairs: a mapping of input names to output names, or pairs of a Parameter and a Result. The output provides
            the value of the variable in the next run.
    """
    from ..passes import MakeStateful

    MakeStateful(pairs).run_on_model(model)


def apply_low_latency_transformation(model: Model, use_const_initializer: bool = True) -> None:
    """Turn loop states into variables, initialized to zero, or without ``use_const_initializer`` as the loops were."""
    from ..passes import LowLatency2

    LowLatency2(use_const_initializer).run_on_model(model)


def apply_pruning_transformation(model: Model) -> NoReturn:
    """Raise `UnsupportedError`: channels that are always zero cannot be pruned."""
    _refuse("apply_pruning_transformation")


def compress_quantize_weights_transformation(model: Model) -> None:
    """Store weights that pass through FakeQuantize (3 to 256 levels) or FakeConvert in 4 or 8 bits."""
    from ..openvino.rewrite.transformations import CompressQuantizeWeights

    CompressQuantizeWeights().run_on_model(model)


def convert_sequence_to_tensor_iterator_transformation(model: Model) -> None:
    """Turn unidirectional LSTM, GRU and RNN sequences into loops over their cells."""
    from ..openvino.rewrite.transformations import ConvertSequenceToTensorIterator

    ConvertSequenceToTensorIterator().run_on_model(model)


def paged_attention_transformation(model: Model, *settings: Any, **more: Any) -> NoReturn:
    """Raise `UnsupportedError`: paged attention is not supported."""
    _refuse("paged_attention_transformation")


def stateful_to_stateless_transformation(model: Model) -> None:
    """Turn the variables of a language model, reordered by the input ``beam_idx``, into inputs and outputs."""
    from ..openvino.build.state import make_stateless

    make_stateless(model)


def _refuse(name: str) -> NoReturn:
    raise UnsupportedError(
        f"{name} is not available: models run as they are, with the same results",
        code=Code.BAD_REQUEST,
        hint="where OpenVINO is installed, apply it there, and save the model",
    )


explain_absent(__name__)
