/* Finds the bodies of kernels that nothing else in a text names, and leaves them out of other entries. */
#include "source/bodies.h"

#include <stdlib.h>
#include <string.h>

static int compare_bodies(const void *left, const void *right) {
    return strcmp(((const struct kernel_body *)left)->name, ((const struct kernel_body *)right)->name);
}

static struct kernel_body *body_named(const struct program *p, const char *name, size_t length) {
    int low = 0, high = p->body_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        struct kernel_body *body = &p->bodies[middle];
        int order = strncmp(body->name, name, length);
        if (!order && !body->name[length]) return body;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

smelt_status bodies_find(struct program *p, const struct structure *s) {
    p->bodies = arena_alloc(&p->arena, ((size_t)s->kernel_count + 1) * sizeof *p->bodies);
    if (!p->bodies) return fail_out_of_memory((size_t)s->kernel_count * sizeof *p->bodies);
    for (int k = 0; k < s->kernel_count; k++) {
        const struct kernel_site *site = &s->kernels[k];
        if (!site->body || site->is_template || site->graphics || site->left_out) continue;
        p->bodies[p->body_count++] =
            (struct kernel_body){structure_last_part(site->name), 0, site->start, site->body, site->end};
    }
    qsort(p->bodies, (size_t)p->body_count, sizeof *p->bodies, compare_bodies);
    for (uint32_t i = 0; i < p->input.count; i++) {
        const struct token *token = &p->input.items[i];
        struct kernel_body *body = token->kind == TOKEN_IDENTIFIER
                                       ? body_named(p, p->input.text + token->start, token->length)
                                       : NULL;
        if (body) body->uses++;
    }
    return SMELT_OK;
}

static void blank(char *from, const char *to) {
    for (; from < to; from++)
        if (*from != '\n') *from = ' ';
}

/* Lines that set lines stay. `text` is the program's. */
static void leave_out(const struct program *p, const struct kernel_body *body, char *text) {
    char *from = text + p->positions[body->open];
    for (uint32_t i = body->open; i < body->close; i++) {
        const struct token *token = &p->input.items[i];
        if (token->kind != TOKEN_DIRECTIVE || !directive_is_line(&p->input, token)) continue;
        blank(from, text + p->positions[i]);
        from = text + p->positions[i] + token->length;
    }
    blank(from, text + p->positions[body->close] + 1);
    text[p->positions[body->close]] = ';';
}

void program_add_text(const struct program *program, const struct entry *entry, struct text *text) {
    size_t start = text->length;
    text_append(text, text_string(&program->text), program->text.length);
    for (int b = 0; !text->failed && b < program->body_count; b++)
        if (program->bodies[b].uses == 1 && program->bodies[b].start != entry->token)
            leave_out(program, &program->bodies[b], text->data + start);
}
