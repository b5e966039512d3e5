package bench

import (
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/flow"
)

// exampleProgram is a set of flow files of examples/, such as
// "two-nodes/node-a".
func exampleProgram(set string) (*flow.Program, error) {
	var src flow.Sources
	for kind, to := range map[string]*flow.Source{".flows": &src.Flows, ".groups": &src.Groups, ".meters": &src.Meters, ".ports": &src.Ports} {
		text, err := examples.FS.ReadFile(set + kind)
		if err != nil {
			return nil, err
		}
		*to = flow.Text(set+kind, string(text))
	}
	return flow.ParseProgram(src)
}
