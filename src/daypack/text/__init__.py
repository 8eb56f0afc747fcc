"""Pure text: values in, values out."""
