package ovstest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
)

// Control is a connection to the switch's control socket. It is Appctl without a process for each
// call (JSON-RPC 1.0, as ovs-appctl speaks it).
type Control struct {
	s       *Switch
	conn    net.Conn
	answers *json.Decoder
	read    map[string]int64 // of each port's capture
}

// Control connects to the control socket until the test ends.
func (s *Switch) Control() *Control {
	s.t.Helper()
	conn, err := net.Dial("unix", s.path("vs.ctl"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return &Control{s: s, conn: conn, answers: json.NewDecoder(conn), read: map[string]int64{}}
}

// Call runs one command. The test fails if the switch refuses it.
func (c *Control) Call(method string, args ...string) string {
	c.s.t.Helper()
	return c.calls([][]string{append([]string{method}, args...)})
}

// calls runs commands one after the other and returns the last answer.
func (c *Control) calls(all [][]string) string {
	c.s.t.Helper()
	var requests []byte
	for i, words := range all {
		r, err := json.Marshal(map[string]any{"id": i, "method": words[0], "params": words[1:]})
		if err != nil {
			c.s.t.Fatal(err)
		}
		requests = append(requests, r...)
	}
	if _, err := c.conn.Write(requests); err != nil {
		c.s.t.Fatal(err)
	}
	var a struct{ Result, Error any }
	for _, words := range all {
		a.Result, a.Error = nil, nil
		if err := c.answers.Decode(&a); err != nil {
			c.s.t.Fatalf("%v: %v", words, err)
		}
		if a.Error != nil {
			c.s.t.Fatalf("%v: %v", words, a.Error)
		}
	}
	text, _ := a.Result.(string)
	return text
}

// mainLoop is more commands than the switch runs in one round of its main loop (ten). So a whole
// round lies between the first and the last.
const mainLoop = 12

// settle is mainLoop commands that do nothing.
func settle(all [][]string) [][]string {
	for range mainLoop {
		all = append(all, []string{"version"})
	}
	return all
}

// Receive puts a frame into a port and waits until it was forwarded. The clock must be stopped
// (time/stop).
func (c *Control) Receive(port string, frame []byte) {
	c.s.t.Helper()
	c.calls(settle([][]string{{"netdev-dummy/receive", port, fmt.Sprintf("%x", frame)}}))
}

// Warp advances the switch's clock, which must be stopped.
func (c *Control) Warp(ms int) {
	c.s.t.Helper()
	c.calls(settle([][]string{{"time/warp", fmt.Sprint(ms)}}))
}

// Sent returns the frames that left a port since the last call.
func (c *Control) Sent(port string) (frames [][]byte) {
	c.s.t.Helper()
	const fileHeader, frameHeader = 24, 16 // libpcap's savefile format
	f, err := os.Open(c.s.path(port + ".pcap"))
	if err != nil {
		c.s.t.Fatal(err)
	}
	defer f.Close()
	from := max(c.read[port], fileHeader)
	b, err := io.ReadAll(io.NewSectionReader(f, from, 1<<30))
	if err != nil {
		c.s.t.Fatal(err)
	}
	at := int64(0)
	for at+frameHeader <= int64(len(b)) {
		n := int64(binary.NativeEndian.Uint32(b[at+8:]))
		if at+frameHeader+n > int64(len(b)) {
			break
		}
		frames = append(frames, b[at+frameHeader:at+frameHeader+n])
		at += frameHeader + n
	}
	c.read[port] = from + at
	return frames
}
