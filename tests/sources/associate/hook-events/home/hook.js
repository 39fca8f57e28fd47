// hook
