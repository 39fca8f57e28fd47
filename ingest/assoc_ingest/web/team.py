async def view(datasette, request):
    raise NotImplementedError
