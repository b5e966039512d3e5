// Package sched is the rig's view of the kernel's scheduler. It measures how long threads ran and waited
// and which other programs had the processors. It also sets processors and priorities of threads.
//
//	times.go                     processor time and memory of processes and threads
//	processorload.go             the machine's load by other programs
//	disturbed.go                 how much of a measurement others disturbed
//	steal.go, perfring_unsafe.go steal time, from perf events
//	affinity.go                  the processors that threads may use
//	priority.go                  precedence over other programs
//	reap.go                      children are reaped by ordinary threads
//	sleep.go                     sleeps with and without Go's timers
//	raw_unsafe.go                system calls that Go's scheduler does not see
package sched
