// Package forward is profile forward: frames one way from a veth to another, by forwarders and
// switches.
//
//	forward.go     the profile and its contenders
//	mix.go         the frames
//	load.go        what one load is measured for
//	overload.go    the rate under overload
//	search.go      the highest rate without loss
//	forwarders.go  forwarders without a pipeline
//	ports.go       forwarders on antrail's ports
//	library.go     a forwarder by another library
//	switch.go      antrail's switch
package forward
