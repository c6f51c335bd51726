"""Operations on images: resizing, sampling, and colour conversion."""
