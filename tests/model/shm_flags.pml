/* The flag protocol of lib/comm/comm_shm.h as allreduce_flat and ddp_shm_barrier use it, with a rank that may die.
 *
 * Every rank owns one flag, an epoch that only grows, and SLOTS payload slots used in turn. A round: write the payload of
 * this epoch, post the epoch, wait until every peer's epoch has reached it (or the abort word is set), read every peer's payload.
 * One rank may die between any two steps; the supervisor sees it some time later and sets the abort word.
 *
 * Proved by exhaustive search: nobody waits for ever (no invalid end state), and whoever leaves a wait by the flags reads
 * the payloads of exactly that epoch (the assertion). Three mistakes, each a macro, must be found:
 *   NO_ABORT     waits do not look at the abort word         -> invalid end state
 *   POST_FIRST   the epoch is posted before the payload       -> assertion
 *   SLOTS=1      one slot: a fast rank overwrites what a slow one still reads -> assertion */
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

/* Sees a death sooner or later, never before it. */
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
