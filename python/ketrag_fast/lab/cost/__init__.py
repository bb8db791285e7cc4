"""What a build costs: prices of the user, the paper's formula, and predictions before anything is spent."""
