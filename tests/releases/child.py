"""Read probes with the installed release of OpenVINO: ``python child.py PROBES ANSWERS START``.

It runs on Python 3.6 with only OpenVINO installed. Each answer is a line; a crash leaves a line without an answer.
"""

import base64
import json
import os
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ElementTree


class Release:
    """The installed release's functions for reading and writing models."""

    def __init__(self, folder):
        self.source, self.copy = (os.path.join(folder, name) for name in ("source.xml", "copy.xml"))
        try:
            import openvino.runtime as api
        except ImportError:
            import openvino as api
        self.api = api
        self.is_old = not hasattr(api, "Core")
        if self.is_old:
            from openvino.inference_engine import IECore

            self.core = IECore()
        else:
            self.core = api.Core()

    def read(self, xml, weights):
        """Return the model that the release reads."""
        with open(self.source, "w", encoding="utf-8") as file:
            file.write(xml)
        with open(_weights(self.source), "wb") as file:
            file.write(weights)
        if self.is_old:
            return self.core.read_network(self.source, _weights(self.source))
        return self.core.read_model(self.source, _weights(self.source))

    def attributes(self, model, kind):
        """Return the attribute names of the last layer of a type, as written by the release."""
        if self.is_old:
            model.serialize(self.copy, _weights(self.copy))
        elif hasattr(self.api, "serialize"):
            self.api.serialize(model, self.copy, _weights(self.copy))
        else:
            from openvino.runtime.passes import Manager

            manager = Manager()
            manager.register_pass("Serialize", self.copy, _weights(self.copy))
            manager.run_passes(model)
        root = ElementTree.parse(self.copy).getroot()  # noqa: S314  what OpenVINO wrote
        layers = [layer for layer in root.iter("layer") if layer.get("type").lower() == kind.lower()]
        data = layers[-1].find("data") if layers else None
        return None if data is None else sorted(data.attrib)


def _weights(path):
    return path[: -len("xml")] + "bin"


def answer(release, probe):
    """Return the release's answer to a probe: an error, or the attributes that it writes."""
    xml = probe["xml"]
    if release.is_old and len(probe["features"]) > 1:  # which is not about the version of the IR itself
        xml = xml.replace(' version="11">', ' version="10">', 1)
    try:
        model = release.read(xml, base64.b64decode(probe["weights"]))
    except Exception as reason:
        return {"error": str(reason)[-400:]}
    if not probe["attributes"]:
        return {}
    try:
        return {"attributes": release.attributes(model, probe["type"])}
    except Exception:  # releases that cannot write dynamic shapes
        return {}


def main(probes, answers, start):
    """Answer the probes from a number on."""
    folder = tempfile.mkdtemp()
    try:
        release = Release(folder)
        with open(probes, encoding="utf-8") as lines, open(answers, "a", encoding="utf-8") as file:
            for number, line in enumerate(lines):
                if number >= start:
                    file.write(f"{number} ")
                    file.flush()
                    file.write(json.dumps(answer(release, json.loads(line))) + "\n")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
