// Package sched decides how workers use processors. It decides how long a worker polls, when it
// keeps idle processors awake, and which ports it has. It knows times and counts, and no packets.
//
//	polling.go      adaptive polling: how long to spin before a sleep
//	idlehold.go     idle processors kept awake during a conversation
//	collections.go  whether Go's garbage collector may be at work
//	moves.go        whether a worker keeps up, and which port to move
//	trial.go        a move on trial
//	wakes.go        how long a sleeping worker takes to run again
package sched
