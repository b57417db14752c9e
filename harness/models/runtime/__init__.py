"""Models that another library computes: ONNX files, torch networks and CatBoost, read as arrays where they can be."""
