package workload

import (
	"fmt"
	"strings"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// RulesOfPriority is how many rules of policies share a priority.
const RulesOfPriority = 100

// PolicyProgram is the program of a Node of examples/two-nodes with more rules of policies. They apply to
// the receiver and match none of the packets.
func PolicyProgram(rules int) (*flow.Program, error) {
	p, err := ExampleProgram("two-nodes/node-a")
	if err != nil {
		return nil, err
	}
	for first := 0; first < rules; first += RulesOfPriority {
		entries, err := RuleEntries(p.Names, first, min(RulesOfPriority, rules-first))
		if err != nil {
			return nil, err
		}
		p.Entries = append(p.Entries, entries...)
	}
	return p, nil
}

// RuleEntries returns the entries of n rules of one priority, the first of which is rule number first.
// n is at most RulesOfPriority.
func RuleEntries(names *flow.Names, first, n int) (entries []*flow.Entry, err error) {
	const lowestID, lowestPort = 1000, 10000
	priority := 14000 - first/RulesOfPriority
	var lines, pod []string
	for i := range n {
		id, source := lowestID+first+i, 172<<24|16<<16|(first+i) // 172.16.0.0/12
		pod = append(pod, fmt.Sprintf("conjunction(%d,2/3)", id))
		lines = append(lines,
			fmt.Sprintf("conj_id=%d,ip actions=drop", id),
			fmt.Sprintf("ip,nw_src=%d.%d.%d.%d actions=conjunction(%d,1/3)", source>>24, source>>16&255, source>>8&255, source&255, id),
			fmt.Sprintf("udp,tp_dst=%d actions=conjunction(%d,3/3)", lowestPort+i, id))
	}
	lines = append(lines, fmt.Sprintf("reg1=%#x actions=%s", testbed.Receiver().OFPort, strings.Join(pod, ",")))
	parser := parse.NewParser(names) // as a switch reads a bundle
	for _, line := range lines {
		e, err := parser.Entry(fmt.Sprintf("table=AntreaPolicyIngressRule,priority=%d,%s", priority, line))
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
