"""Operations on images: resizing, sampling, and conversions of colours."""
