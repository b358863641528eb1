"""What a fitted model is, whatever fitted it: prediction, scores, progress, model selection, the path."""
