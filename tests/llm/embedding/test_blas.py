"""The number of threads that multiply matrices: one inside, as before outside."""

import threading

import numpy as np
import pytest

from daypack.llm.embedding.blas import _controls, single_threaded  # pyright: ignore[reportPrivateUsage]


def test_the_setting_is_one_inside_and_comes_back_with_the_last() -> None:
    assert np.ones(2).sum() == 2  # numpy is loaded, and with it the library
    found = _controls()
    if found is None:
        pytest.skip("numpy has no OpenBLAS here")
    read, write = found
    before = read()
    inside, leave = threading.Barrier(2), threading.Event()

    def stay() -> None:
        with single_threaded():
            inside.wait()
            leave.wait()

    write(2)
    try:
        given = read()  # less where there is only one processor
        other = threading.Thread(target=stay)
        with single_threaded():
            assert read() == 1
            other.start()
            inside.wait()
        assert read() == 1  # the other one is still at it
        leave.set()
        other.join()
        assert read() == given
        with pytest.raises(ValueError, match="no"), single_threaded():
            raise ValueError("no")
        assert read() == given
    finally:
        write(before)
