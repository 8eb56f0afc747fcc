"""Benchmarks: daypack compared with a plain baseline and a peer, on the same disk, in the same run."""
