"""A broker process: what arrives is handed to the broker core, and what this wants done is done."""
