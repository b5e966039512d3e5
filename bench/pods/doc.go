// Package pods is the profiles between pods: stream, rr, connect, tunnel, gateway, idle and trace-link. Their
// contenders are agents, Open vSwitch and the kernel.
//
//	pods.go, pairs.go                 contenders of one Node; a pair of pods
//	podlab.go                         agents' pods
//	ovspair.go, ovstunnel.go          Open vSwitch's, on one Node and on two
//	kernelpairs.go, overlaypairs.go   the kernel's, on one Node and on two
//	bare.go                           a forwarder over packet sockets
//	manystreams.go, flows.go               profile stream; streams under way
//	rr.go, roundtrips.go              profile rr; round trips
//	connect.go                        profile connect
//	shortconnections.go, sockets.go        the pods' connections; blocking sockets
//	tunnel.go, poddatagrams.go        profile tunnel; UDP
//	gateway.go, gatewaypairs.go       profile gateway; its contenders
//	iperf3.go                         streams of iperf3, in profiles tunnel and gateway
//	idle.go, idleagent.go             profile idle; an agent without a lab
//	tracelink.go                      profile trace-link
package pods
