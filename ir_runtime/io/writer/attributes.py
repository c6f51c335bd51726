"""Format the attributes of layers."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.graph import Layer
from ...ops import Op
from ...ops._define.attributes import attribute_text

__all__ = ["attribute_text", "attribute_texts"]

_NAMESPACE = "{"  # how names in a namespace begin; an IR has none


def attribute_texts(layer: Layer, changed: Mapping[str, object]) -> dict[str, str]:
    """Return the attributes of a layer by their names in files.

    Args:
        layer: the layer. Texts from its file are kept if they mean the same, as are attributes unknown to its operation.
        changed: values that override those of the operation.
    """
    texts = {name: text for name, text in layer.attributes.items() if not name.startswith(_NAMESPACE)}
    for name, attribute in layer.op.schema().items() if isinstance(layer.op, Op) else ():
        if attribute.external:
            continue
        value = changed.get(name, vars(layer.op)[name])
        said = texts.get(attribute.xml)
        if said is None:
            if name in changed or value != attribute.default:
                texts[attribute.xml] = attribute_text(value)
        elif attribute_text(attribute.parse(said)) != attribute_text(value):
            texts[attribute.xml] = attribute_text(value)
    return texts
