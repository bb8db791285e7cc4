//! Files of one generation: checked, mapped, shared between processes.
