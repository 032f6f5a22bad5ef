#pragma once
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>

// Linux calls that Swift's Glibc module does not show; prctl is variadic.
static inline int reel_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }

// fcntl's F_OFD_GETLK and F_OFD_SETLK: locks of an open file instead of a process.
static const int reel_open_file_getlk = 36;
static const int reel_open_file_setlk = 37;
