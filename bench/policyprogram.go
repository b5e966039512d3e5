package bench

import (
	"fmt"
	"strings"

	"github.com/antrail/antrail/flow"
)

// rulesOfPriority is how many rules have one priority.
const rulesOfPriority = 100

// policyProgram is examples/two-nodes with so many policy rules more, which
// apply to the receiver and match none of the rig's packets.
func policyProgram(rules int) (*flow.Program, error) {
	p, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		return nil, err
	}
	for first := 0; first < rules; first += rulesOfPriority {
		entries, err := ruleEntries(p.Names, first, min(rulesOfPriority, rules-first))
		if err != nil {
			return nil, err
		}
		p.Entries = append(p.Entries, entries...)
	}
	return p, nil
}

// ruleEntries are the entries of n rules of one priority.
func ruleEntries(names *flow.Names, first, n int) (entries []*flow.Entry, err error) {
	const lowestID, lowestPort = 1000, 10000
	priority := 14000 - first/rulesOfPriority
	var lines, pod []string
	for i := range n {
		id, source := lowestID+first+i, 172<<24|16<<16|(first+i) // 172.16.0.0/12
		pod = append(pod, fmt.Sprintf("conjunction(%d,2/3)", id))
		lines = append(lines,
			fmt.Sprintf("conj_id=%d,ip actions=drop", id),
			fmt.Sprintf("ip,nw_src=%d.%d.%d.%d actions=conjunction(%d,1/3)", source>>24, source>>16&255, source>>8&255, source&255, id),
			fmt.Sprintf("udp,tp_dst=%d actions=conjunction(%d,3/3)", lowestPort+i, id))
	}
	lines = append(lines, fmt.Sprintf("reg1=%#x actions=%s", receiver().OFPort, strings.Join(pod, ",")))
	for _, line := range lines {
		e, err := flow.ParseEntry(fmt.Sprintf("table=AntreaPolicyIngressRule,priority=%d,%s", priority, line), names)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
