package main

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/tripline/tripline/internal/natsconn"
)

// connection is how the commands that talk to NATS reach it.
type connection struct {
	Server    string `short:"s" env:"NATS_URL" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"NATS server, or several with commas between." group:"Connection:"`
	Creds     string `env:"NATS_CREDS" type:"existingfile" placeholder:"FILE" help:"Credentials file." group:"Connection:"`
	Nkey      string `env:"NATS_NKEY" type:"existingfile" placeholder:"FILE" help:"File with an nkey seed." group:"Connection:"`
	User      string `env:"NATS_USER" help:"User." group:"Connection:"`
	Password  string `env:"NATS_PASSWORD" help:"Password; better in the environment." group:"Connection:"`
	Token     string `env:"NATS_TOKEN" help:"Token; better in the environment." group:"Connection:"`
	TLSCA     string `name:"tlsca" env:"NATS_CA" type:"existingfile" placeholder:"FILE" help:"CA certificate." group:"Connection:"`
	TLSCert   string `name:"tlscert" env:"NATS_CERT" type:"existingfile" placeholder:"FILE" help:"Client certificate." group:"Connection:"`
	TLSKey    string `name:"tlskey" env:"NATS_KEY" type:"existingfile" placeholder:"FILE" help:"Its key." group:"Connection:"`
	Namespace string `env:"TRIPLINE_NAMESPACE" default:"tripline" help:"Namespace of the service." group:"Connection:"`
}

// dial connects, or says at once why it can't.
func (c connection) dial() (*nats.Conn, error) {
	nc, err := natsconn.DialOnce(natsconn.Config{
		URL: c.Server, Creds: c.Creds, NKey: c.Nkey, User: c.User, Password: c.Password, Token: c.Token,
		CA: c.TLSCA, Cert: c.TLSCert, Key: c.TLSKey, Instance: "cli",
	})
	if err != nil {
		return nil, fmt.Errorf("%w (--server or NATS_URL)", err)
	}
	return nc, nil
}
