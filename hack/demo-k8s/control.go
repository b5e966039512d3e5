package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
)

const (
	apiPort      = "6443"
	serviceCIDRs = "10.96.0.0/16,fd00:10:96::/112"
	podCIDRs     = "10.10.0.0/16,fd00:10:10::/56"
)

func (c *cluster) kubeconfig() string { return c.file("kubeconfig") }

// upControl starts etcd, the API server and its controllers, and waits for the API.
func (c *cluster) upControl(ctx context.Context) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if err := c.upUnderlay(); err != nil {
		return err
	}
	token, err := c.writeSecrets()
	if err != nil {
		return err
	}
	for _, p := range [][]string{
		{"etcd", "--data-dir", c.file("etcd"), "--unsafe-no-fsync", "--log-level", "warn"},
		c.apiServer(),
	} {
		if _, err := c.start(p[0], "", inControl(append([]string{c.bin + "/" + p[0]}, p[1:]...)...)...); err != nil {
			return err
		}
	}
	if err := c.writeKubeconfig(token); err != nil {
		return err
	}
	if err := wait(ctx, "API server", func() error { _, err := c.kubectl("get", "--raw", "/readyz"); return err }); err != nil {
		return err
	}
	for _, p := range [][]string{
		{"kube-controller-manager", "--leader-elect=false", "--cert-dir", c.file("certs-kcm"), "--cluster-cidr", podCIDRs, "--allocate-node-cidrs",
			"--service-account-private-key-file", c.file("sa.key"), "--root-ca-file", c.file("certs/apiserver.crt")},
		{"kube-scheduler", "--leader-elect=false", "--cert-dir", c.file("certs-sched")},
	} {
		argv := append([]string{c.bin + "/" + p[0], "--kubeconfig", c.kubeconfig(), "--bind-address", "127.0.0.1"}, p[1:]...)
		if _, err := c.start(p[0], "", inControl(argv...)...); err != nil {
			return err
		}
	}
	return nil
}

// apiServer is the command line of kube-apiserver, which makes its own certificates.
func (c *cluster) apiServer() []string {
	return []string{"kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--bind-address=" + controlIP, "--advertise-address=" + controlIP,
		"--secure-port=" + apiPort, "--cert-dir=" + c.file("certs"), "--service-cluster-ip-range=" + serviceCIDRs,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file=" + c.file("sa.key"),
		"--service-account-key-file=" + c.file("sa.key"), "--token-auth-file=" + c.file("tokens.csv"), "--authorization-mode=RBAC",
		"--kubelet-preferred-address-types=InternalIP"}
}

// writeSecrets makes the key of service accounts and the administrator's token.
func (c *cluster) writeSecrets() (token string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(c.file("sa.key"), text, 0o600); err != nil {
		return "", err
	}
	b := make([]byte, 16)
	rand.Read(b)
	token = hex.EncodeToString(b)
	return token, os.WriteFile(c.file("tokens.csv"), []byte(token+",admin,admin,system:masters\n"), 0o600)
}

func (c *cluster) writeKubeconfig(token string) error {
	return os.WriteFile(c.kubeconfig(), fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: demo
clusters: [{name: demo, cluster: {server: "https://%s:%s", certificate-authority: %s}}]
users: [{name: admin, user: {token: %s}}]
contexts: [{name: demo, context: {cluster: demo, user: admin}}]
`, controlIP, apiPort, c.file("certs/apiserver.crt"), token), 0o600)
}
