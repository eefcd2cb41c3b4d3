/*
 * search.h - closing a search, also where there is none (missing.c).
 */
#ifndef AGENTWAL_PYTHON_SEARCH_SEARCH_H
#define AGENTWAL_PYTHON_SEARCH_SEARCH_H

/* Closes a struct wal_search. Without the interpreter's lock. */
void search_close(void *search);

#endif
