package main

import (
	"testing"
)

// TestCNITool: a runtime's whole course by cnitool, through a real agent: two Pods
// get interfaces of both families and reach each other and the Node; CHECK,
// STATUS; ADD and DEL twice; nothing is left.
func TestCNITool(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.start()
	a, b := w.sandbox("a"), w.sandbox("b")
	w.must("status", a)
	ra := w.add(a)
	rb := w.add(b)
	for _, ip := range rb.IPs {
		if err := a.ping(ip.Address.IP.String()); err != nil {
			t.Errorf("%v\n%s", err, w.log)
		}
	}
	for _, ip := range ra.IPs {
		if err := a.ping(ip.Gateway.String()); err != nil {
			t.Error(err)
		}
	}
	w.must("check", a)
	w.must("del", a)
	w.must("del", a)
}
