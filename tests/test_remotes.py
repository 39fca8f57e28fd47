"""The address of a remote means one repository, whatever its scheme, user, port and spelling."""

from __future__ import annotations

import pytest

from assoc_ingest.remotes import remote_of

SPELLINGS = {
    "github.com/ada/shop": (
        "https://github.com/ada/shop.git",
        "http://www.github.com/ada/shop/",
        "git@github.com:ada/shop.git",
        "github.com:ada/shop",
        "ssh://git@GitHub.com:22/ada/shop.git/",
        "ssh://git@ssh.github.com:443/ada/shop",
        "git+ssh://git@github.com/ada/shop",
        "https://ada:p@ss:word@github.com/ada/shop.git",
        "https://x-access-token:secret@github.com/ada/shop",
        "https://api.github.com/repos/ada/shop",
        "github.com/ada/shop",
    ),
    "gitlab.com/ada/tools/shop": (
        "https://gitlab.com/ada/tools/shop.git",
        "https://gitlab.com/api/v4/projects/ada%2Ftools%2Fshop",
    ),
    "dev.azure.com/ada/tools/shop": (
        "git@ssh.dev.azure.com:v3/ada/tools/shop",
        "https://ada@dev.azure.com/ada/tools/_git/shop",
    ),
    "work/ada/shop": ("git@work:ada/shop.git",),
    "example.org/~ada/shop": ("ssh://example.org/~ada/shop.git", "ada@example.org:~ada/shop"),
}


@pytest.mark.parametrize("meant", SPELLINGS)
def test_all_spellings_of_an_address_mean_one_repository(meant: str) -> None:
    assert {str(remote_of(url)) for url in SPELLINGS[meant]} == {meant}


@pytest.mark.parametrize(
    "url",
    [
        "", "origin", "ada/shop", "/srv/git/shop.git", "../shop", "~/shop", "C:\\work\\shop",
        "C:/work/shop", "file:///srv/shop.git", "ext::sh -c evil", "https://github.com",
        "https://github.com/", "https://github.com/ada/../shop", "https://github.com/ada//shop",
        "https://evil://github.com/ada/shop", "https://github.com/ada/shop?x=1",
        "https://github.com/ada/sh op", "https://github.com/ada/\x1b[31mshop", "git@[::1]:ada/shop",
        "https://github.com/ada/\u202eshop", "https://git\u0000hub.com/ada/shop",
        "https://github.com/" + "a/" * 200 + "shop",
    ],
)  # fmt: skip
def test_what_means_no_repository_on_a_server_is_none(url: str) -> None:
    assert remote_of(url) is None


@pytest.mark.parametrize("host", ["localhost", "localhost:3000", "127.0.0.1:41234", "0.0.0.0"])
def test_a_server_on_this_machine_tells_nothing(host: str) -> None:
    """It may be a proxy for any other."""
    assert remote_of(f"http://proxy@{host}/git/ada/shop") is None
