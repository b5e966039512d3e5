// Package rig runs the contenders of a profile in turn, round by round, and keeps what they reached. A
// profile is one question; its contenders are those that can answer it on this machine.
//
//	options.go    what a run is asked for
//	rig.go        a run of profiles
//	rounds.go     contenders in turn
//	readings.go   figures of all rounds
//	hardware.go   the machine of a run
//	result.go     what a run found, and files of it
//	binary.go     the program that was measured
//	comparing.go  one run beside another
//	trend.go      several runs, one after the other
package rig
