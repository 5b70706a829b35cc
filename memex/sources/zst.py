"""Logs that their CLI compressed."""

from collections.abc import Iterable, Iterator

import zstandard

_STEP = 64 * 1024


def decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress zstd frames; what follows a torn or damaged place cannot be read and is left out."""
    decompressor = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    for piece in pieces:
        for at in range(0, len(piece), _STEP):
            try:
                yield decompressor.decompress(piece[at : at + _STEP])
            except zstandard.ZstdError:
                return


def compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Compress into one zstd frame."""
    compressor = zstandard.ZstdCompressor().compressobj()
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()
