"""What was answered, on disk, and its view in MLflow."""
