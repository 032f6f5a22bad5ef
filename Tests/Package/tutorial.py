#!/usr/bin/env python3
"""Does what a tutorial tells its reader to do: writes the files, runs the commands, and compares the output.

    tutorial.py PAGE FOLDER

FOLDER is the empty folder of the app. The page is read from the first line to the last. The paragraph above a block of
code says what to do with it:

    Put this into `FILE`:                                                a new file
    Add this to the end of `FILE`:                                       more lines
    Put this into `FILE`, before the line that begins with `TEXT`:       lines in between
    In `FILE`, replace the line that begins with `TEXT` by this:         lines instead of one

A block of the language `sh` is one command in a terminal of its own. A block of the language `text` is the output of the
program that was started last; below the words "both programs", of the two that run. If the program has ended, the output
must be these lines. Otherwise it must contain them. Below the words "such as" numbers may differ.

`Stop the program with Ctrl-C`, `the node` and `both programs` do that. The node, which is the command with the word
`serve`, gets a free port in place of 7350.
"""
import codecs
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

PORT = 7350
# A build is part of some commands.
SECONDS_MAX = 900


class Fault(Exception):
    """A difference of the page from what happens."""


class Program:
    """A command in a terminal of its own, so that each line of its output appears at once."""

    def __init__(self, command, folder, environment):
        self.command = command
        self.is_node = " serve" in command
        self.output = ""
        self.seen = 0  # the length of the output that earlier blocks have shown
        terminal, other = pty.openpty()
        self.errors = open(os.path.join(folder, ".errors"), "ab+")
        self.process = subprocess.Popen(
            ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=other,
            stderr=self.errors, start_new_session=True)
        os.close(other)
        self.reader = threading.Thread(target=self.read, args=(terminal,), daemon=True)
        self.reader.start()

    def read(self, terminal):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:  # the program has closed its side
                data = b""
            if not data:
                os.close(terminal)
                return
            self.output += decoder.decode(data).replace("\r\n", "\n")

    @property
    def is_running(self):
        return self.process.poll() is None

    def stop(self):
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(60)

    def kill(self):
        if self.is_running:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Reader:
    """Somebody who follows the page."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.environment = dict(os.environ, REEL_LISTEN=f"127.0.0.1:{self.port}")

    def running(self, node=False):
        return [program for program in self.programs if program.is_running and program.is_node == node]

    # Files

    def write(self, above, code):
        files = re.findall(r"`([\w/.-]+\.swift)`", above)
        if len(files) != 1:
            raise Fault("the sentence above the code does not name one file")
        path = os.path.join(self.folder, files[0])
        code = code.replace(f":{PORT}", f":{self.port}")
        begins = re.search(r"(before|replace) the line that begins with `([^`]+)`", above)
        if begins:
            with open(path, encoding="utf-8") as file:
                lines = file.read().split("\n")
            places = [i for i, line in enumerate(lines) if line.strip().startswith(begins[2])]
            if len(places) != 1:
                raise Fault(f"{len(places)} lines of {files[0]} begin with {begins[2]}")
            place = places[0]
            indent = lines[place][:len(lines[place]) - len(lines[place].lstrip())]
            new = [indent + line if line else line for line in code.split("\n")]
            lines[place:place + (begins[1] == "replace")] = new
            code = "\n".join(lines)
        elif f"to the end of `{files[0]}`" in above:
            with open(path, encoding="utf-8") as file:
                code = file.read() + "\n" + code + "\n"
        elif os.path.exists(path):
            raise Fault(f"{files[0]} exists; say where the code belongs")
        else:
            code += "\n"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(code)

    # Programs

    def start(self, command):
        if "\n" in command:
            raise Fault("a block has one command")
        self.check_ends()
        self.programs.append(Program(command, self.folder, self.environment))
        print(f"  {command}", flush=True)

    def check_ends(self):
        for program in self.programs:
            if not program.is_running and program.process.returncode not in (0, 130, -signal.SIGINT):
                raise Fault(f"`{program.command}` has failed")

    def compare(self, above, expected):
        if "both programs" in above.lower():
            programs = self.running()
            if len(programs) != 2:
                raise Fault(f"{len(programs)} programs run")
        else:
            programs = self.programs[-1:]
        for program in programs:
            self.wait(program, expected, "such as" in above)

    def wait(self, program, expected, is_example):
        def plain(text):
            return re.sub(r"\d+", "N", text) if is_example else text

        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end:
            is_running = program.is_running
            if not is_running:
                program.reader.join()  # the rest of the output
            output = plain("\n" + program.output[program.seen:])
            if is_running and f"\n{plain(expected)}\n" in output:
                if not is_example:
                    program.seen += output.index(f"\n{expected}\n") + len(expected) + 1
                return
            if not is_running:
                if program.process.returncode == 0 and output == f"\n{plain(expected)}\n":
                    return
                break
            time.sleep(0.1)
        raise Fault(f"`{program.command}` prints:\n{program.output}\nThe page says:\n{expected}")

    def stop(self, paragraph):
        found = re.findall(r"[Ss]top (the program|the node|both programs) with Ctrl-C", paragraph)
        if len(found) != paragraph.count("Ctrl-C"):
            raise Fault("the sentence does not say what Ctrl-C stops")
        for what in found:
            programs = self.running(node=what == "the node")
            if len(programs) != (2 if what == "both programs" else 1):
                raise Fault(f"{len(programs)} programs run; the page stops {what}")
            for program in programs:
                program.stop()

    def follow(self, page):
        above = ""
        for number, kind, text in parts(page):
            try:
                if kind == "prose":
                    self.stop(text)
                    above = text
                elif kind == "sh":
                    self.start(text)
                elif kind == "text":
                    self.compare(above, text)
                else:
                    self.write(above, text)
            except Fault as fault:
                raise Fault(f"{page}:{number}: {fault}") from None
        for program in self.programs:
            try:
                program.process.wait(60)
            except subprocess.TimeoutExpired:
                raise Fault(f"`{program.command}` still runs at the end of the page") from None
        self.check_ends()


def parts(page):
    """Yields the number of the first line, the kind and the text of each paragraph and of each block of code."""
    with open(page, encoding="utf-8") as file:
        lines = file.read().split("\n")
    first, kind, part = 0, None, []
    for number, line in enumerate(lines, 1):
        if kind not in (None, "prose"):
            if line == "```":
                yield first, kind, "\n".join(part)
                kind, part = None, []
            else:
                part.append(line)
            continue
        is_fence = line.startswith("```")
        if kind == "prose" and (is_fence or not line):
            yield first, kind, " ".join(part)
            kind, part = None, []
        if is_fence:
            first, kind = number, line[3:] or "code"
        elif line:
            if kind is None:
                first, kind = number, "prose"
            part.append(line)


def main():
    page, folder = sys.argv[1:]
    # A shell starts a background job with SIGINT ignored, and the programs here would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    reader = Reader(folder)
    try:
        reader.follow(page)
    except Fault as fault:
        print(fault)
        with open(os.path.join(folder, ".errors"), encoding="utf-8", errors="replace") as errors:
            print("\n".join(errors.read().split("\n")[-40:]))
        sys.exit(1)
    finally:
        for program in reader.programs:
            program.kill()


main()
