"""The audit log of a home: who read, wrote, erased or exported which memory and entries; never what they say."""
