"""sentence-transformers with its OpenVINO backend: sentence embeddings, and scores of sentence pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["make", "pairs", "sentences"]

Arrays = dict[str, np.ndarray[Any, Any]]
TEXTS = ["a small red boat", "the boat is small", "rain on a warm day", "day and night"]
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *sorted({word for text in TEXTS for word in text.split()}),
]


def make(folder: Path) -> None:
    """Make an encoder and a pair classifier with random weights, each with its tokenizer."""
    import transformers as tf

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = tf.BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, num_labels=1, **sizes)
    _export(folder / "sentences", tf.BertModel(config), "feature-extraction")
    _export(folder / "pairs", tf.BertForSequenceClassification(config), "text-classification")


def _export(folder: Path, model: Any, task: str) -> None:
    if (folder / "openvino").exists():
        return
    import torch
    import transformers as tf
    from optimum.exporters.openvino import main_export

    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    words = folder / "vocab.txt"
    words.write_text("\n".join(WORDS))
    tf.BertTokenizerFast(vocab_file=str(words)).save_pretrained(folder)
    main_export(
        str(folder),
        output=str(folder / "openvino"),
        task=task,
        library_name="transformers",
        convert_tokenizer=False,
    )


def _settings() -> dict[str, Any]:
    from clients.programs import PRECISE

    return {"backend": "openvino", "model_kwargs": {"ov_config": PRECISE}}


def sentences(models: Path) -> Arrays:
    """Embed sentences, and compare the embeddings."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers import models as parts

    words = parts.Transformer(str(models / "sentences"), **_settings())
    pooling = parts.Pooling(32, pooling_mode="mean")
    model = SentenceTransformer(modules=[words, pooling, parts.Normalize()])
    found = model.encode(TEXTS, batch_size=3)
    return {"embeddings": found, "similar": model.similarity(found, found).numpy()}


def pairs(models: Path) -> Arrays:
    """Score pairs of sentences, and rank them."""
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(models / "pairs"), **_settings())
    scores = model.predict([(TEXTS[0], text) for text in TEXTS])
    ranked = model.rank(TEXTS[0], TEXTS[1:])
    return {"scores": scores, "ranked": np.array([found["corpus_id"] for found in ranked])}
