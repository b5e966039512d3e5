//go:build linux && !portable

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// TestFollowedDrops: what comes stands below its heading, though nobody knew how long it
// would be.
func TestFollowedDrops(t *testing.T) {
	var b bytes.Buffer
	d := dropsFlags{from: source{output: "text"}}
	p := &api.DroppedPacket{Time: time.Now(), Reason: "entry", Table: "IngressDefaultRule", Packet: "icmp 10.10.0.26 > 10.10.0.25 type 8 code 0"}
	p.Port.Pod = "default/client-a"
	if err := d.teller(&b)(p); err != nil {
		t.Fatal(err)
	}
	head, line, _ := strings.Cut(b.String(), "\n")
	for heading, cell := range map[string]string{"FROM": "default/client-a", "REASON": "entry", "TABLE": "IngressDefaultRule", "PACKET": "icmp "} {
		if at := strings.Index(line, cell); at < 0 || at != strings.Index(head, heading) {
			t.Errorf("%s is not below %s:\n%s", cell, heading, &b)
		}
	}
}
