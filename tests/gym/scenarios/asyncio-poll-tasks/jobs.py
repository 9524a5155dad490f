"""A print shop: each order is followed by a task of its own."""

import asyncio


class Board:
    def __init__(self):
        self.states = {}

    def state(self, number):
        return self.states.get(number, "waiting")


async def watch_order(board, number):
    while board.state(number) != "printed":
        await asyncio.sleep(0.003)
    return number


async def printer(board):
    number = 0
    while True:
        await asyncio.sleep(4)
        board.states[number] = "printed"
        number += 1


async def main():
    board = Board()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(printer(board))
        for number in range(60):
            tasks.create_task(watch_order(board, number))


asyncio.run(main())
