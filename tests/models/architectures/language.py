"""Language models."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from models.architectures.registry import Arrays, model, normal, tokens

if TYPE_CHECKING:
    from openvino import Model
    from torch import nn

LLAMA = {"layers": 2, "heads": 4, "shared_heads": 2, "width": 64, "vocabulary": 256}
CACHE = [f"{part}_{i}" for i in range(LLAMA["layers"]) for part in ("key", "value")]
T5_WIDTH, T5_VOCABULARY = 32, 128


@model("bert_base_128", partial(tokens, vocabulary=30522, segments=True))
@model("bert_base", partial(tokens, vocabulary=30522, segments=True), (-1, -1))
def bert_base() -> nn.Module:
    """Build BERT base (12 layers of width 768) with the outputs `last_hidden_state` and `pooler_output`."""
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig())


@model("gpt2_128", partial(tokens, vocabulary=50257))
@model("gpt2", partial(tokens, vocabulary=50257, length=64), (-1, -1))
def gpt2() -> nn.Module:
    """Build GPT-2 small with its language head, without a KV cache."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(use_cache=False))


def prompt(rng: np.random.Generator, batch: int = 1, length: int = 9) -> Arrays:
    """Draw the inputs of a stateful language model: the tokens of the first run."""
    return {
        "input_ids": rng.integers(LLAMA["vocabulary"], size=(batch, length)),
        "attention_mask": np.ones((batch, length), np.int64),
        "position_ids": np.arange(length)[None].repeat(batch, 0),
        "beam_idx": np.arange(batch, dtype=np.int32),
    }


def past() -> Arrays:
    """Return empty caches for all layers."""
    empty = np.zeros((1, LLAMA["shared_heads"], 0, LLAMA["width"] // LLAMA["heads"]), np.float32)
    return dict.fromkeys(CACHE, empty)


def keep_cache(converted: Model) -> None:
    """Turn the KV cache of a decoder into initially empty variables, as optimum-intel does."""
    from openvino import opset13 as op
    from openvino._offline_transformations import apply_make_stateful_transformation

    apply_make_stateful_transformation(converted, {name: f"present_{name}" for name in CACHE})
    ids = op.shape_of(converted.input("input_ids"), "i64")
    batch = op.gather(ids, op.constant([0]), op.constant(0))
    for node in converted.get_ops():
        if node.get_type_name() == "ReadValue":
            rest = [dimension.min_length for dimension in node.get_output_partial_shape(0)][1:]
            empty = op.broadcast(op.constant(np.float32(0)), op.concat([batch, op.constant(rest)], 0))
            node.set_arguments([empty])
    converted.validate_nodes_and_infer_types()


@model(
    "llama",
    prompt,
    {"beam_idx": (-1,)}
    | dict.fromkeys(("input_ids", "attention_mask", "position_ids"), (-1, -1))
    | {name: (-1, array.shape[1], -1, array.shape[3]) for name, array in past().items()},
    past=past,
    finish=keep_cache,
)
def llama() -> nn.Module:
    """Build a small Llama with grouped-query attention and a KV cache in variables, reordered by `beam_idx`."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from models.architectures.modules import CachedDecoder

    config = LlamaConfig(
        vocab_size=LLAMA["vocabulary"], hidden_size=LLAMA["width"], intermediate_size=2 * LLAMA["width"],
        num_hidden_layers=LLAMA["layers"], num_attention_heads=LLAMA["heads"],
        num_key_value_heads=LLAMA["shared_heads"], max_position_embeddings=128,
    )  # fmt: skip
    return CachedDecoder(LlamaForCausalLM(config))


def t5() -> nn.Module:
    """Build a small T5 with gated feed-forward layers, as in version 1.1."""
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=T5_VOCABULARY, d_model=T5_WIDTH, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
            relative_attention_num_buckets=8, relative_attention_max_distance=16,
            feed_forward_proj="gated-gelu", use_cache=False, tie_word_embeddings=False,
        )
    )  # fmt: skip


@model("t5_encoder", partial(tokens, vocabulary=T5_VOCABULARY, length=24), (-1, -1))
def t5_encoder() -> nn.Module:
    """Build the encoder of a small T5."""
    return t5().get_encoder()


def t5_decoder_inputs(rng: np.random.Generator) -> Arrays:
    """Draw decoder tokens, encoder states, and their padding mask."""
    encoded = tokens(rng, T5_VOCABULARY, 24)
    return {
        "decoder_input_ids": rng.integers(T5_VOCABULARY, size=(1, 7)),
        "encoder_hidden_states": normal(rng, 1, 24, T5_WIDTH),
        "attention_mask": encoded["attention_mask"],
    }


@model(
    "t5_decoder",
    t5_decoder_inputs,
    {
        "decoder_input_ids": (-1, -1),
        "encoder_hidden_states": (-1, -1, T5_WIDTH),
        "attention_mask": (-1, -1),
    },
)
def t5_decoder() -> nn.Module:
    """Build the decoder of a small T5, with its head."""
    from models.architectures.modules import DecoderOf

    return DecoderOf(t5())
