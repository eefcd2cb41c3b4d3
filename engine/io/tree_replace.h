/*
 * tree_replace.h - whether a file may take the place of a name (SPEC.md 5.14).
 * Any thread.
 */
#ifndef WAL_IO_TREE_REPLACE_H
#define WAL_IO_TREE_REPLACE_H

/* 0, or the errno that says why a file of the same directory cannot take the
 * place of the name, or be put there where there is none. */
int wal__tree_check_replace(int directory, const char *name);

#endif
