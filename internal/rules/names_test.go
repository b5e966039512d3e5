package rules

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// named after what they are of: a command, a table of the pipeline, a tool, a page.
var namedAfter = []string{"cmd", "tables", "hack", "docs"}

// oneMeaning are the names of files that stand in several parts of the tree and mean the
// same thing there, by what that is.
var oneMeaning = map[string]string{
	"main.go, doc.go": "a program; what a package is for",
	"icmp.go, ipv6.go, sctp.go, tcp.go, fragment.go":                                                        "a protocol's headers, states or checks",
	"conntrack.go, connections.go, dump.go, offload.go, restore.go, revalidate.go":                          "connections, and what is done with all of them",
	"conjunction.go, entry.go, group.go, learn.go, match.go, meter.go, program.go, validate.go":             "a part of the language of entries, read, compiled or taught",
	"egress.go, manifests.go, node.go, objects.go, pods.go, policy.go, service.go, refusededits.go":         "objects of the cluster",
	"ports.go, portsecurity.go, reason.go, socket.go, switch.go, tunnel.go, uplink.go, awake.go, undone.go": "ports, and what they carry",
	"cache.go, live.go, map.go, packetcounters.go, packetin.go, pipeline.go, walk.go":                       "a part of the switch, asked or shown",
	"filter.go, scan.go": "a program that chooses packets; text cut into words",
	"answer.go, api.go, client.go, give.go, page.go, serve.go":                           "questions to a process, and their answers",
	"capabilities.go, cni.go, memory.go, namespace.go, sysctl.go, settings.go, stats.go": "the process and its Node",
	"installer.go, memoryswitch.go, reconcile.go":                                        "a switch as control sees it, and how it is kept as it should be",
	"warm.go, wire.go": "memory fetched ahead; values as JSON for another process",
}

// TestFileNamesMeanOneThing: a file's name that stands in several parts of the tree means the
// same thing in each, because whoever looks for a file knows its name first.
func TestFileNamesMeanOneThing(t *testing.T) {
	places := map[string][]string{}
	for _, f := range read(t, false) {
		part, _, _ := strings.Cut(f.dir, "/")
		if slices.Contains(namedAfter, part) {
			continue
		}
		name := path.Base(f.path)
		if !slices.Contains(places[name], part) {
			places[name] = append(places[name], part)
		}
	}
	allowed := map[string]bool{}
	for names := range oneMeaning {
		for name := range strings.SplitSeq(names, ", ") {
			if allowed[name] {
				t.Errorf("%s is listed twice", name)
			}
			allowed[name] = true
			if len(places[name]) < 2 && name != "main.go" {
				t.Errorf("%s stands in %q alone: take it off the list", name, places[name])
			}
		}
	}
	for name, parts := range places {
		if len(parts) > 1 && !allowed[name] {
			t.Errorf("%s stands in %q: name the files after what each is about, or list the name with its one meaning", name, parts)
		}
	}
}
