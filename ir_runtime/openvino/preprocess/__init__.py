"""Preprocessing and postprocessing that becomes a part of the model. As ``openvino.preprocess``."""
