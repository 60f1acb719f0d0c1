"""A lean HTTP/1.1 client: httptools parses, aiohappyeyeballs connects; the rest is here.

It does what calls of a model need, and nothing else: POST with the whole body at hand, no
redirects, no cookies, no proxies. docs/decisions.md says why it is there at all.
"""
