/* The flag protocol of lib/comm/shm/comm_shm.h as allreduce_flat and ddp_shm_barrier use it, with a rank that may
 * die.
 *
 * Every rank owns one flag, a sequence number that only grows (`epoch` below), and SLOTS payload slots
 * that it uses in turn. In each round a rank writes its payload, posts the sequence number, waits until
 * every peer has posted the number too (or the abort word is set), and reads every peer's payload. One
 * rank may die between any two steps. The supervisor notices the death later and sets the abort word.
 *
 * An exhaustive search proves that no rank waits forever (no invalid end state), and that a rank that
 * leaves a wait because of the flags reads exactly the payloads of that round (the assertion). Three
 * mistakes, each enabled by a macro, must be detected:
 *   NO_ABORT     waits ignore the abort word                              -> invalid end state
 *   POST_FIRST   the sequence number is posted before the payload         -> assertion
 *   SLOTS=1      a fast rank overwrites the slot that a slow rank reads   -> assertion */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif

byte flag[N];
byte payload[N * SLOTS]; /* [rank][epoch % SLOTS] */
bool abort_word = false;
bool dead[N];
bool may_die = true; /* at most one rank dies */
byte running = N;

#define SLOT(rank, epoch) payload[(rank) * SLOTS + ((epoch) % SLOTS)]

inline maybe_die()
{
    if
    :: may_die -> atomic { may_die = false; dead[me] = true; goto gone }
    :: true
    fi
}

proctype Rank(byte me)
{
    byte epoch = 0, peer = 0;
    do
    :: epoch < ROUNDS ->
        epoch++;
        maybe_die();
#ifdef POST_FIRST
        flag[me] = epoch;
        maybe_die();
        SLOT(me, epoch) = epoch;
#else
        SLOT(me, epoch) = epoch;
        maybe_die();
        flag[me] = epoch;
#endif
        peer = 0;
        do
        :: peer < N ->
            maybe_die();
            if
            :: flag[peer] >= epoch
#ifndef NO_ABORT
            :: abort_word -> goto gone
#endif
            fi;
            peer++
        :: else -> break
        od;
        peer = 0;
        do
        :: peer < N ->
            assert(SLOT(peer, epoch) == epoch);
            peer++
        :: else -> break
        od
    :: else -> break
    od;
gone:
    running--
}

/* Notices a death at any time after it. */
proctype Supervisor()
{
    byte r;
end_watch:
    do
    :: running == 0 -> break
    :: atomic { dead[0] || dead[1] || dead[N - 1] -> abort_word = true }; break
    od;
    running == 0
}

init
{
    byte r = 0;
    atomic {
        do
        :: r < N -> run Rank(r); r++
        :: else -> break
        od;
        run Supervisor()
    }
}
