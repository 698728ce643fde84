"""Speed, measured: every figure beside a bare baseline in the same run, so that a shared machine's noise cancels."""
