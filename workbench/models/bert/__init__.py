"""BERT encoders on ONNX Runtime, from published weights."""
