package attack

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/antrail/antrail/examples"
)

// answered are policies for which the agent itself handles packets: it answers rejected
// ones, and logs others.
const answered = `apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: attack-test}
spec:
  priority: 1
  tier: securityops
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress:
    - {name: Rejected, action: Reject, ports: [{protocol: TCP, port: 8081}]}
    - {name: Logged, action: Drop, enableLogging: true, ports: [{protocol: TCP, port: 23}]}
`

// The ports of the two rules.
const (
	rejectedPort = 8081
	loggedPort   = 23
)

// writeObjects writes the cluster's objects into a directory: examples/web-app
// without its TrafficControls, which lead packets through other ports, and with
// the policies above.
func writeObjects(dir string) error {
	files, err := fs.Sub(examples.FS, "web-app")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, "egress-trafficcontrol.yaml")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "attack-test.yaml"), []byte(answered), 0o600)
}
