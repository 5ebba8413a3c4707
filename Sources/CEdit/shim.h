#ifndef SKEP_CEDIT_SHIM_H
#define SKEP_CEDIT_SHIM_H
#include <histedit.h>
#include <locale.h>
#include <stdio.h>

// Swift imports neither variadic functions nor the standard streams.
static inline EditLine *skep_el_open(char *(*prompt)(EditLine *)) {
  EditLine *edit = el_init("skep", stdin, stdout, stderr);
  if (edit == NULL) return NULL;
  el_set(edit, EL_PROMPT, prompt);
  el_set(edit, EL_EDITOR, "emacs");
  return edit;
}
// What is typed and shown is UTF-8, whatever the locale says. Called while there is one thread.
static inline void skep_use_utf8(void) { setlocale(LC_CTYPE, "C.UTF-8"); }
static inline void skep_el_set_reader(EditLine *edit, el_rfunc_t reader) {
  el_set(edit, EL_GETCFN, reader);
}
// A line is edited a key at a time, so that something may be written above it in between.
static inline void skep_el_begin(EditLine *edit) { el_set(edit, EL_UNBUFFERED, 1); }
static inline void skep_el_end_line(EditLine *edit) { el_set(edit, EL_UNBUFFERED, 0); }
static inline void skep_el_redraw(EditLine *edit) { el_set(edit, EL_REFRESH); }
static inline History *skep_history_open(EditLine *edit, int lines) {
  History *past = history_init();
  HistEvent event;
  if (past == NULL) return NULL;
  history(past, &event, H_SETSIZE, lines);
  history(past, &event, H_SETUNIQUE, 1);
  el_set(edit, EL_HIST, history, past);
  return past;
}
static inline void skep_history_enter(History *past, const char *line) {
  HistEvent event;
  history(past, &event, H_ENTER, line);
}
#endif
