// Functions as C++ has them: recursion, through each other, pointers to functions, goto, deleted ones, statics that never
// change.
// scalar-engine: it calls functions through pointers, and itself
// run: functions -b 0:out:int32:13x7 --grid 13 --threadgroup 13
// let ack = lambda m, n: n + 1 if m == 0 else ack(m - 1, 1) if n == 0 else ack(m - 1, ack(m, n - 1))
// let fib = lambda n: n if n < 2 else fib(n - 1) + fib(n - 2)
// let T = (3, 1, 4, 1, 5)
// let row = lambda i: (ack(2, i), fib(i), 2 ** i - 1, int(i % 2 == 0), (i + 1 if i % 2 else 2 * i), 3 * (i % 4 + 1), T[i % 5] + T[(i + 1) % 5])
// expect buffer 0: f(i) for i in 91: row(i // 7)[i % 7]
#include <metal_stdlib>
using namespace metal;

int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
template <typename T> T fibonacci(T n) {
  if (n < 2) return n;
  return fibonacci(n - 1) + fibonacci(n - 2);
}
void hanoi(int n, thread int &moves) {
  if (n == 0) return;
  hanoi(n - 1, moves);
  moves++;
  hanoi(n - 1, moves);
}
bool is_odd(int n);
bool is_even(int n) { return n == 0 ? true : is_odd(n - 1); }
bool is_odd(int n) { return n == 0 ? false : is_even(n - 1); }
int successor(int x) { return x + 1; }
int doubled(int x) { return 2 * x; }
int apply(int (*f)(int), int x) { return f(x); }
struct Only {
  int value;
  Only() = delete;
  Only(int v) : value(v) {}
};

kernel void functions(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  static constant int table[5] = {3, 1, 4, 1, 5};
  static constexpr int same[5] = {3, 1, 4, 1, 5};
  device int *mine = out + 7 * i;
  mine[0] = ackermann(2, i);
  mine[1] = fibonacci(int(i));
  int moves = 0;
  hanoi(i, moves);
  mine[2] = moves;
  mine[3] = is_even(i);
  int (*chosen)(int) = i & 1 ? successor : doubled;
  mine[4] = apply(chosen, i);
  int sum = 0, k = 0;
again:
  sum += 3;
  if (k++ < int(i % 4)) goto again;
  mine[5] = sum;
  mine[6] = table[i % 5] + Only(same[(i + 1) % 5]).value;
}
