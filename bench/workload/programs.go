package workload

import (
	"fmt"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// ExampleProgram reads a set of flow files of examples/, such as "two-nodes/node-a".
func ExampleProgram(set string) (*flow.Program, error) {
	var src parse.Sources
	for kind, to := range map[string]*parse.Source{".flows": &src.Flows, ".groups": &src.Groups, ".meters": &src.Meters, ".ports": &src.Ports} {
		text, err := examples.FS.ReadFile(set + kind)
		if err != nil {
			return nil, err
		}
		*to = parse.Text(set+kind, string(text))
	}
	return parse.Program(src)
}

// SingleEntryProgram is a single entry that forwards from the sender to the receiver.
func SingleEntryProgram() (*flow.Program, error) {
	text := fmt.Sprintf("table=0,in_port=%d actions=output:%d", testbed.Sender().OFPort, testbed.Receiver().OFPort)
	return parse.Program(parse.Sources{Flows: parse.Text("one entry", text)})
}
