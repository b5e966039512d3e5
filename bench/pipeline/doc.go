// Package pipeline is the profiles of the pipeline alone: pipeline, policy, service, programs and trace. They
// measure what entries cost a packet, without the drivers that move it.
//
//	pipeline.go                profile pipeline
//	programs.go                profile programs: those beside Antrea's
//	programsweep.go            profiles policy and service: programs of many sizes
//	programtest.go             contenders with one program
//	measure.go, samples.go     a round of a contender; samples of the cost of a packet
//	antrail.go, memoryswitch.go  antrail's side; its switch with ports in memory
//	ovs.go, ovssamples.go      Open vSwitch's side
//	install.go                 what it costs to install entries
//	tables.go                  what each table costs
//	tracecost.go               profile trace: what a live trace costs
package pipeline
