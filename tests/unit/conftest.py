"""Properties are held to what they say, not to how long a busy machine takes."""

from hypothesis import settings

# on top of what hypothesis takes by itself, which under CI is the same examples each time
settings.register_profile("purebpf", settings(), deadline=None)
settings.load_profile("purebpf")
