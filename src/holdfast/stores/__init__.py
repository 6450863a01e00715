"""Object stores: protocols, implementations, interceptors."""
